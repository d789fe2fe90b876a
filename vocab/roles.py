"""Who may ask for what: the roles that a token can have, and the sets of them that routes name."""

from enum import StrEnum


class Role(StrEnum):
    """What the bearer of a token is."""

    VIEWER = "viewer"  # looks
    OPERATOR = "operator"  # looks, and orders what people order
    ADMIN = "admin"  # everything, tokens too
    NODE = "node"  # an agent, for its own node alone
    GATEWAY = "gateway"  # reads where replicas answer, and says which nodes it reaches
    ENROLL = "enroll"  # once: to be traded for a node's own token


LOOKS = frozenset({Role.VIEWER, Role.OPERATOR, Role.ADMIN})
ORDERS = frozenset({Role.OPERATOR, Role.ADMIN})
ADMINS = frozenset({Role.ADMIN})
NODES = frozenset({Role.NODE, Role.ADMIN})
ROUTES = frozenset({*LOOKS, Role.NODE, Role.GATEWAY})  # what a gateway needs; on a GPU node it has the node's token
REACHES = frozenset({Role.NODE, Role.GATEWAY, Role.ADMIN})
ENROLLS = frozenset({Role.ENROLL})
