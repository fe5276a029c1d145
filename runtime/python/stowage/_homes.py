# SPDX-License-Identifier: Apache-2.0
"""Where a model was before it was captured, and how it gets there again."""

import torch


class Homes:
    """Devices of a model's tensors. Made before a capture."""

    def __init__(self, model):
        tensors = [*model.parameters(), *model.buffers()]
        self._away = [(one, one.device) for one in tensors if one.device.type == "cuda"]

    def bring_back(self, state):
        """The tensors, now on the CPU, go to their devices; `state` of optimizers to that of them.

        One storage at a time, so that those that shared one still do.
        """
        if not self._away:
            return
        moved = {}
        first = self._away[0][1]
        for tensor, device in [*self._away, *((one, first) for one in state)]:
            if tensor.device != device:
                _move(tensor, device, moved)


def _move(tensor, device, moved):
    storage = tensor.untyped_storage()
    key = storage._cdata
    if key not in moved:
        # The old one stays known as long as others may share it.
        moved[key] = (storage, _bytes_of(storage).to(device).untyped_storage())
    there = torch.empty(0, dtype=tensor.dtype, device=device)
    there.set_(moved[key][1], tensor.storage_offset(), tensor.size(), tensor.stride())
    tensor.data = there


def _bytes_of(storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
