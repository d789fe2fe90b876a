"""A model from disk: where it lies, its formats, its weights as the engine wants them, how long that takes."""
