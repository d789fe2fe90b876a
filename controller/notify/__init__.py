"""Notices: what people's other systems (tickets, chats) are told, one for each change of state."""
