"""The algorithms that cuBLASLt lists for a product, by ctypes: for cuda_peers.py --list. Constants are those of cublasLt.h."""
import ctypes

LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12")
REAL = {"f32": 0, "f16": 2, "bf16": 14}                   # cudaDataType_t
COMPUTE = {"f32": 68, "tf32": 77, "f16": 68, "bf16": 68}  # cublasComputeType_t: f32 sums
MAX_WORKSPACE = 1                                         # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
WORKSPACE = 64 << 20


class Result(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""

    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def opened():
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise RuntimeError("cuBLASLt is not there")


class Product:
    """y[m,n] = a[m,k] x b[k,n], row by row: what the library takes for columns of the transposed product."""

    def __init__(self, m, n, k, kind, most=32):
        self.lib, self.handle, self.desc = opened(), ctypes.c_void_p(), ctypes.c_void_p()
        real = REAL["f32" if kind == "tf32" else kind]
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.call("cublasLtMatmulDescCreate", ctypes.byref(self.desc), COMPUTE[kind], REAL["f32"])
        self.b, self.a, self.y = (self.layout(real, *dims) for dims in ((n, k), (k, m), (n, m)))
        wish, size, count = ctypes.c_void_p(), ctypes.c_size_t(WORKSPACE), ctypes.c_int()
        self.call("cublasLtMatmulPreferenceCreate", ctypes.byref(wish))
        self.call("cublasLtMatmulPreferenceSetAttribute", wish, MAX_WORKSPACE, ctypes.byref(size), ctypes.c_size_t(ctypes.sizeof(size)))
        results = (Result * most)()
        self.call("cublasLtMatmulAlgoGetHeuristic", self.handle, self.desc, self.b, self.a, self.y, self.y, wish, most, results, ctypes.byref(count))
        self.call("cublasLtMatmulPreferenceDestroy", wish)
        self.found = [r for r in results[: count.value] if r.state == 0]

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: status {status}")

    def layout(self, real, rows, columns):
        made = ctypes.c_void_p()
        self.call("cublasLtMatrixLayoutCreate", ctypes.byref(made), real, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        return made

    def run(self, result, a, b, y, workspace, stream):
        """Of device addresses."""
        one, none = ctypes.c_float(1), ctypes.c_float(0)
        self.call("cublasLtMatmul", self.handle, self.desc, ctypes.byref(one), ctypes.c_void_p(b), self.b, ctypes.c_void_p(a), self.a,
                  ctypes.byref(none), ctypes.c_void_p(y), self.y, ctypes.c_void_p(y), self.y, ctypes.byref(result.algo),
                  ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(stream))

    def close(self):
        for layout in (self.a, self.b, self.y):
            self.call("cublasLtMatrixLayoutDestroy", layout)
        self.call("cublasLtMatmulDescDestroy", self.desc)
        self.call("cublasLtDestroy", self.handle)
