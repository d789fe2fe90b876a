"""Grafana boards as data: small Python that builds them, the JSON that ships, the files that provision them."""
