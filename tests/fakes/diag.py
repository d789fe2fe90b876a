"""A measuring program for tests: the protocol of ``python -m engine.diag`` without PyTorch, well or misbehaved.

    python tests/fakes/diag.py --as WAY … --device cpu --burn-s 3 open exact

WAY is good (the default), absent (no PyTorch), silent (hangs in the first test), hangs-in:TEST, dies-in:TEST, nonsense.
A ``--fault`` befalls its results as it does those of the real program.
"""

import argparse
import os
import signal
import sys

GOOD = {
    "open": '{"figures":"open","device":"cpu","board":"a test"}',
    "exact": '{"figures":"exact","products":12}',
    "memory": '{"figures":"memory","device":"cpu","tested_bytes":33554432,"patterns":6}',
    "copies": '{"figures":"copies","device":"cpu","up_bytes_per_s":1e9,"down_bytes_per_s":1e9,'
    '"within_bytes_per_s":1e9}',
    "rate": '{"figures":"rate","device":"cpu","kind":"float32","flops_per_s":1e9}',
    "allreduce": '{"figures":"unmeasured","test":"allreduce","why":"NCCL joins GPUs, and this device is a CPU"}',
    "burn": '{"figures":"burn","device":"cpu","seconds":3.0,"products":9,"wrong":0,"first_flops_per_s":1e9,'
    '"last_flops_per_s":1e9}',
}
WRONG = '{"figures":"exact","products":12,"wrong":["float32 256x256x256"]}'
LOST = '{{"figures":"unmeasured","test":"{}","why":"CUDA did not open it: GPU is lost","error":"GPU is lost"}}'
ABSENT = '{{"figures":"unmeasured","test":"{}","why":"PyTorch is not installed here"}}'


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="way", default="good")
    parser.add_argument("--device")
    parser.add_argument("--burn-s")
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    for test in options.tests:
        say(f'{{"figures":"begun","test":"{test}"}}')
        if options.way in {"silent", f"hangs-in:{test}"} or "hang" in options.fault:
            signal.pause()
        if options.way == f"dies-in:{test}":
            return 1
        if options.way == "nonsense":
            say("not JSON")
        elif options.way == "absent":
            say(ABSENT.format(test))
        elif "lost" in options.fault:
            say(LOST.format(test))
        elif "corrupt" in options.fault and test == "exact":
            say(WRONG)
        else:
            say(GOOD[test])
    return 0


if __name__ == "__main__":
    sys.exit(main())
