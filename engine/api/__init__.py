"""The OpenAI API over HTTP: what is asked, who is let in, what is answered. It never computes."""
