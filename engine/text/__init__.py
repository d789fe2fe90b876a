"""Between text and tokens: the tokenizer, chat templates, text that grows token by token, tool calls in it."""
