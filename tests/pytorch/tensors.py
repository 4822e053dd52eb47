"""Reads safetensors files into PyTorch's tensors. Runs where PyTorch is."""
import json
import struct

import numpy
import torch

TYPES = {"F64": "<f8", "F32": "<f4", "I32": "<i4"}


def read(path):
    """The tensors and the metadata."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, about in header.items():
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        array = numpy.frombuffer(content[begin:end], dtype=TYPES[about["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(about["shape"]).copy())
    return tensors, metadata
