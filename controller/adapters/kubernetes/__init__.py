"""Kubernetes: pods are evicted, devices tainted and nodes cordoned through its API server."""
