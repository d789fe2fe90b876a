"""Who may enter, how often and how large: tokens, roles, rates, limits."""
