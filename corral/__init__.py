"""The command line: one thin module a command. Every command speaks to the processes over their HTTP APIs."""
