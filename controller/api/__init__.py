"""The HTTP interface: a table of routes, their forms, and the OpenAPI page that is made from both."""
