"""opcheck or rbee in this process, whose AMD device is the fake HIP runtime (tests/gpu/fake) with an emulated
processor."""
import ctypes
import os
import struct
import traceback

from amd_emulator.code_object import CodeObject
from amd_emulator.machine import KernelFault, Machine


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, Dim3, ctypes.c_uint32, ctypes.c_uint32,
                        ctypes.c_void_p, ctypes.c_uint32)
LAUNCH_FAILED = 719


def words_of(address):
    return [address & 0xFFFFFFFF, address >> 32]


def user_registers(kernel, packet, arguments):
    """What stands in the first scalar registers, by the bits of the descriptor's properties. `packet`: the address of
    the dispatch packet, where the compiler's own arrays in shared memory find the block's size."""
    out = []
    for bit, words in ((1, [0] * 4), (2, words_of(packet)), (4, [0] * 2), (8, words_of(arguments)),
                       (16, [0] * 2), (32, [0] * 2), (64, [kernel.private_bytes])):
        if kernel.properties & bit:
            out += words
    return out


class Session:
    """`arch`: the emulated target. `build`: a build with RBEE_ROCM and tests, compiled for that target.

    RBEE_EMULATOR_SKIP: kernels with this in their name do nothing, a planted fault for tests."""

    def __init__(self, tinygrad, arch, build, cache, blocks_at_once=1, seed=0):
        fake = build / "tests/gpu/fake/librbee_fake_hip.so"
        # tinygrad's own cache is a database for one thread only; rbee launches from several.
        os.environ.update(RBEE_HIP_LIBRARY=str(fake), RBEE_FAKE_ARCH=arch, CCACHE="0")
        # Of thousands of kernels, the self-test of captured steps would take hours.
        os.environ.setdefault("RBEE_GRAPHS", "1")
        self._machine = Machine(tinygrad, arch, cache, blocks_at_once, seed)
        self._loaded = {}
        self._hook = HOOK(self._launch)  # kept: the library has its address
        self._runtime = ctypes.CDLL(str(fake))
        self._runtime.rbee_fake_set_launch_hook(self._hook)
        self._runtime.rbee_fake_violation.restype = ctypes.c_char_p
        self._build = build

    def opcheck(self, words):
        """Its exit status."""
        device = [] if "--device" in words else ["--device", "rocm:0"]
        return self._call("tools/opcheck/librbee_opcheck_emulated.so", "rbee_opcheck", ["opcheck", *words, *device])

    def rbee(self, words):
        """Its exit status."""
        return self._call("cli/librbee_emulated.so", "rbee_command_line", ["rbee", *words])

    def _call(self, library, function, words):
        arguments = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
        status = getattr(ctypes.CDLL(str(self._build / library)), function)(len(words), arguments)
        violation = self._runtime.rbee_fake_violation().decode()
        if violation:
            print("the runtime was misused:", violation, flush=True)
        return status or (1 if violation else 0)

    def _launch(self, image, kernel, grid, threads, shared, params, params_bytes):
        skipped = os.environ.get("RBEE_EMULATOR_SKIP")
        if skipped and skipped in kernel.decode():
            return 0
        try:
            if image not in self._loaded:
                self._loaded[image] = CodeObject(image)
            code = self._loaded[image]
            self._run(code, code.kernel(kernel.decode()), (grid.x, grid.y, grid.z), threads, shared,
                      ctypes.string_at(params, params_bytes))
            return 0
        except KernelFault as fault:
            print(f"{kernel.decode()}: {fault}", flush=True)
            return LAUNCH_FAILED
        except Exception:  # an exception cannot cross into the library
            print(f"{kernel.decode()}: the emulator failed", flush=True)
            traceback.print_exc(limit=-3)
            return LAUNCH_FAILED

    def _run(self, code, kernel, grid, threads, shared, params):
        """`params`: the bytes of the kernel's parameter; the runtime's own arguments come after them."""
        hidden = struct.pack("<IIIHHHHHH", *grid, threads, 1, 1, 0, 0, 0) + bytes(40) + struct.pack("<H", 1)
        block = params + bytes(-len(params) % 8) + hidden
        block += bytes(max(kernel.argument_bytes - len(block), 0))
        arguments = ctypes.create_string_buffer(block, len(block))
        sizes = struct.pack("<HHHHHHIII", 0, 1, threads, 1, 1, 0, grid[0] * threads, *grid[1:])
        packet = ctypes.create_string_buffer(sizes, 64)  # hsa_kernel_dispatch_packet_t
        self._machine.launch(code, kernel, grid, threads, kernel.group_bytes + shared,
                             user_registers(kernel, ctypes.addressof(packet), ctypes.addressof(arguments)))
