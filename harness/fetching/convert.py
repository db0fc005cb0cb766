"""Making a transformers folder of a GGUF file, once, because loading GGUF there takes half a minute."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError
from harness.core.hub import stay_offline
from harness.core.resources import data_folder
from harness.fetching.get import locked, replace
from harness.fetching.sources import Source

_PACKAGES = ("torch", "transformers", "accelerate", "gguf")


def transformers_folder(source: Source) -> Path:
    """Give the folder in which a model's transformers form is kept; it need not exist."""
    return data_folder() / "transformers" / source.name


def gguf_of(source: Source) -> Path | None:
    """Give the GGUF file of a source that has one."""
    for file in source.files:
        if file.path.endswith(".gguf"):
            return source.folder / file.path
    return None


def missing_packages() -> list[str]:
    """Give the packages that `to_transformers` lacks here."""
    return [name for name in _PACKAGES if importlib.util.find_spec(name) is None]


def to_transformers(source: Source) -> Path:
    """Write the model as bf16 weights with tokenizer, as `hf:NAME` reads it.

    The numbers are those of the GGUF file, dequantised; no precision comes back.

    Parameters
    ----------
    source : Source
        A fetched model with a GGUF file; `missing_packages` must be empty.

    Returns
    -------
    pathlib.Path
        The folder; made anew only when it is not there.

    Raises
    ------
    HarnessError
        The disk is full, or transformers cannot read the file.
    """
    final = transformers_folder(source)
    file = gguf_of(source)
    assert file is not None
    part = final.with_name(f".{source.name}.part")
    try:
        with locked(final):
            if final.is_dir():
                return final
            shutil.rmtree(part, ignore_errors=True)
            try:
                _convert(file, part)
                replace(part, final)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except Exception as error:  # whatever transformers or safetensors make of a full disk
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise HarnessError(f"cannot make {final}: {line}; nothing of it was kept") from error
    return final


def _convert(file: Path, folder: Path) -> None:
    stay_offline()
    os.environ.setdefault("TQDM_DISABLE", "1")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    read: Any = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.bfloat16
    )
    # A model read from GGUF refuses to be saved, so its weights move into a plain one.
    del read.config.quantization_config
    model = type(read)(read.config).to(torch.bfloat16)
    model.load_state_dict(read.state_dict())
    model.tie_weights()
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
