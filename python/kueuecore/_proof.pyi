# The second extension: rust/proof. Only `make dev` builds it; the wheel never has it.
__all__ = ["answer"]

def answer(case: bytes) -> bytes | None: ...
