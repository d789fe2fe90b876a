"""The pages for people, rendered by the controller; ``pages.Pages`` serves them."""
