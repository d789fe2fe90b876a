"""Known answers that come with Corral, so that the very first run on a node has something to compare with.

In float32 they hold on every device, within the tolerance; the sum of the weights' bits is exact.
"""

SMOLLM2_FILE = ("SmolLM2-135M-Instruct.Q4_1.gguf", 98362432, "a41cea53dfc7d917e1db3a21e79bc1d4")
"""Name, size, and hash of both ends (see engine.files.model_files)."""
SMOLLM2_GOLDEN: dict[str, object] = {
    "weights": 7924209985484965760,
    "answers": [
        {
            "prompt": [13, 7932, 15851, 23770, 31689, 39608, 47527, 6294, 14213, 22132, 30051, 37970],
            "tokens": [83, 8712, 198, 198],
            "logprobs": [-2.65193, -2.94831, -2.68033, -2.5843],
        },
        {
            "prompt": [
                13,
                7932,
                15851,
                23770,
                31689,
                39608,
                47527,
                6294,
                14213,
                22132,
                30051,
                37970,
                45889,
                4656,
                12575,
                20494,
                28413,
                36332,
                44251,
                3018,
                10937,
                18856,
                26775,
                34694,
                42613,
                1380,
                9299,
                17218,
                25137,
                33056,
                40975,
                48894,
                7661,
                15580,
                23499,
                31418,
                39337,
                47256,
                6023,
                13942,
            ],
            "tokens": [629, 446, 216, 34],
            "logprobs": [-2.90288, -2.46996, -2.51531, -1.46641],
        },
    ],
}
