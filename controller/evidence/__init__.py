"""The evidence of a fault, for a vendor: its parts, the tar around them, the bundles that nobody asked for."""
