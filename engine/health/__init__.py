"""What the engine knows of itself: how its errors are meant, whether it computes right, whether it is slow."""
