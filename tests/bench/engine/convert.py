"""Writes a GGUF's weights as a model folder in float32. Runs in the environment of transformers: GGUF FOLDER."""

import sys
from pathlib import Path

import torch
import transformers


def main() -> None:
    gguf, folder = Path(sys.argv[1]), sys.argv[2]
    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    transformers.AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    del model.config.quantization_config  # the weights are whole numbers of float32 now
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(folder)


if __name__ == "__main__":
    main()
