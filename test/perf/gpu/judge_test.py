#!/usr/bin/env python3
"""Tests of judge.py: what is met and what is not, of small records and of the one that is kept."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "cuda"))
import judge  # noqa: E402
import measured  # noqa: E402
import parts  # noqa: E402


def of(record, point):
    return {r["what"]: r for r in judge.rows(record) if r["point"] == point}


def kernel(name, us=10.0, of_copy=0.5, **more):
    return dict({"name": name, "kernel": "k", "us": us, "bytes": 128 << 20, "flops": 0, "of_copy": of_copy, "tflops": 0}, **more)


class Judge(unittest.TestCase):
    def test_row(self):
        for value, asked, better, slack, met in ((0.9, 0.9, "more", 0, True), (0.899, 0.9, "more", 0, False), (1.1, 1.1, "less", 0, True),
                                                 (1.11, 1.1, "less", 0, False), (1.03, 1, "near", 0.031, True), (0.96, 1, "near", 0.03, False),
                                                 (None, 1, "more", 0, None), (5, None, "more", 0, None)):
            self.assertEqual(judge.row("movers", "x", value, asked, better, slack=slack)["met"], met, (value, asked, better))

    def test_empty_record_tells_of_each_point_that_it_was_not_measured(self):
        rows = judge.rows({"parts": {"training": {"state": "not there", "why": "PyTorch is not there"}}})
        self.assertEqual([r["point"] for r in rows], list(judge.POINTS))
        self.assertEqual({r["met"] for r in rows}, {None})
        why = {r["point"]: r["why"] for r in rows}
        self.assertEqual(why["training memory"], "PyTorch is not there")
        self.assertEqual(why["start"], "part start was not run")

    def test_movers_are_large(self):
        kernels = [kernel("relu f32", of_copy=0.91), kernel("concat f32", of_copy=0.89), kernel("relu f16", bytes=1 << 20), kernel("small steps"),
                   {"name": "device copy", "bytes": 1, "gb_per_s": 3.0}]
        self.assertEqual({k: r["met"] for k, r in of({"kernels": kernels}, "movers").items()}, {"relu f32": True, "concat f32": False})

    def test_one_row_counts_weights(self):
        half = 8192 * 8192 * 2
        rows = of({"kernels": [kernel("one row f16", of_copy=0.9, bytes=half * 2), kernel("depthwise 3x3 f32", of_copy=0.8)]}, "gemv")
        self.assertEqual([r["value"] for r in rows.values()], [0.45])

    def test_products(self):
        kernels = [kernel("product f16 4096", us=10, peer_us=9.5), kernel("product f32 4096", us=10, peer_us=16), kernel("product f32 197x384x384"),
                   kernel("product f16 8192", us=10), kernel("product, bias, gelu f16"), kernel("conv 1x1 f16", us=10, peer_us=9, peer="PyTorch"),
                   kernel("attention f16", us=10, peer_us=9), kernel("product f16 1024", peer_error="out of memory")]
        record = {"kernels": kernels}
        self.assertEqual({k: r["met"] for k, r in of(record, "products").items()},
                         {"product f16 4096": True, "product f16 8192": None, "product f16 1024": None, "product tf32": None})
        self.assertEqual(of(record, "products")["product f16 1024"]["why"], "out of memory")
        self.assertEqual({k: r["met"] for k, r in of(record, "f32").items()}, {"product f32 4096": True})
        self.assertEqual([r["met"] for r in of(record, "convolutions").values()], [False])
        self.assertEqual([r["met"] for r in of(record, "attention").values()], [True])

    def test_what_a_library_takes_is_told(self):
        record = {"kernels": [kernel("product f16 4096", us=10, peer_us=9.6), kernel("product f16 4096, cuBLASLt", us=8)],
                  "libraries": {"MatMul": {"passed": 1, "failed": [], "error": None}, "Gemm": {"passed": 0, "failed": [], "error": "crashed"}}}
        rows = of(record, "products")
        self.assertEqual((rows["product f16 4096, cuBLASLt"]["value"], rows["product f16 4096, cuBLASLt"]["met"]), (0.8, None))
        self.assertTrue(rows["product f16 4096"]["met"])
        self.assertEqual([r["met"] for r in of(record, "operators").values()], [True, None])

    def test_sizes(self):
        self.assertEqual(judge.size_of("product f32 197x384x1536"), (197, 1536, 384))
        self.assertEqual(judge.size_of("product f16 of 128 rows"), (128, 4096, 4096))
        self.assertIsNone(judge.size_of("product"))

    def test_networks(self):
        def net(ms, batch=1, **more):
            return dict({"network": "n", "precision": "f32", "batch": batch, "ms": ms}, **more)

        nets = [net(1.0, peers={"graph": 2.0, "compile": 4.0, "ort": "is not there"}), net(3.0, 8, peer_ms=2.0), net(1.0, 64, peers={"graph": "cannot be"})]
        rows = of({"networks": nets}, "networks") | of({"networks": nets}, "together")
        self.assertEqual({k: (r["value"], r["met"]) for k, r in rows.items()},
                         {"n f32, batch 1": (0.5, True), "n f32, batch 8": (1.5, False), "n f32, batch 64": (None, None),
                          "1 networks, f32, batch 1": (0.5, True), "1 networks, f32, batch 8": (1.5, False),
                          "all 2": (0.866, False)})
        self.assertEqual(rows["n f32, batch 64"]["why"], "graph: cannot be")

    def test_steps_training_memory_start(self):
        record = {
            "steps": {"nodes": 512, "beside_us": 1.4, "unrecorded_us": 5.0, "planning": [{"model": "m", "ms_per_100": 21}, {"model": "e", "error": "no"}]},
            "training": [{"network": "n", "precision": "f32", "batch": 4, "ms": 1, "peer_ms": 1.2, "bytes": 9, "peer_bytes": 10}],
            "memory": [{"network": "n", "precision": "f32", "batch": 1, "planned": 100, "allocated": 103, "peer_bytes": 200}],
            "start": [{"network": "n", "s": 0.5, "peer_s": 2.1}, {"network": "o", "s": 0.5, "peer_error": "gone"}],
            "profiles": [{"model": "m", "agreement": 0.98}], "bias": [{"model": "m", "ratio": 1.03}]}
        met = {(r["point"], r["what"]): r["met"] for r in judge.rows(record)}
        for point, what, want in (("step", "chain of 512 steps", True), ("host step", "chain of 512 steps", False), ("planning", "m", False),
                                  ("planning", "e", None), ("training", "n f32, batch 4", True), ("training memory", "n f32, batch 4", False),
                                  ("memory", "n f32, batch 1", False), ("memory of PyTorch", "n f32, batch 1", True), ("start", "n", True),
                                  ("start", "o", None), ("profile", "m", True), ("bias", "m", False)):
            self.assertEqual(met[point, what], want, (point, what))

    def test_what_is_wrong_is_so_on_the_emulated_device_too(self):
        record = {"emulated": True, "kernels": [kernel("relu f32")], "operators": {"passed": 1, "failed": ["not ok 1"], "error": None},
                  "models": [{"model": "m", "right": False, "same_bits": False, "runs": 100, "error": "differs"}],
                  "errors": [{"what": "f32", "right": False}],
                  "sanitizer": {"memcheck": {"parts": 2, "clean": 1, "errors": ["bad"]}, "initcheck": {"parts": 2, "clean": 1, "errors": []}}}
        record["rows"] = judge.rows(record)
        self.assertEqual(of(record, "movers")["relu f32"]["met"], None)
        self.assertEqual(sorted(r["point"] for r in judge.wrong(record)), ["f32 error", "operators", "right", "same bits", "sanitizer"])
        self.assertIn("1 of 2 parts ended early", of(record, "sanitizer")["initcheck"]["why"])

    def test_ten_runs_are_fewer_than_asked(self):
        rows = of({"models": [{"model": "m", "same_bits": True}, {"model": "n", "same_bits": True, "runs": 100}]}, "same bits")
        self.assertEqual([r["met"] for r in rows.values()], [None, True])

    def test_table(self):
        text = judge.table(judge.rows({"kernels": [kernel("relu f32", of_copy=0.95), kernel("concat f32")]}))
        self.assertIn("kernels that move memory, of a copy: 1 of 2 met\n  relu f32", text)
        self.assertRegex(text, r"concat f32 +0\.5 +asked at least 0\.9 +missed")
        self.assertRegex(text, r"training step.* - .* not measured because part training was not run")

    def test_readme_table_of_a_new_record(self):
        record = {"gpu": "A GPU, 1.2", "date": "2026-01-01", "models": [], "networks": [
            {"network": "n", "precision": "f32", "batch": 1, "ms": 1.0, "kernels_ms": 0.5, "peer_ms": 2.0},
            {"network": "o", "precision": "f32", "batch": 1, "ms": 1.0, "kernels_ms": 0.5},
            {"network": "p", "precision": "f32", "batch": 1, "error": "gone"}],
            "kernels": [{"name": "device copy", "gb_per_s": 3000.0}, kernel("relu f32", of_copy=0.95), kernel("concat f32")]}
        record["rows"] = judge.rows(record)
        text = measured.table(record)
        self.assertIn("| n | f32 | 1 | 1.000 ms | 0.500 ms | 0.50 |\n| o | f32 | 1 | 1.000 ms | 0.500 ms | |\n", text)
        self.assertIn("| kernels that move memory, of a copy: at least 0.9 | 1 | 1 | 0 | 0.5 |", text)
        self.assertNotIn("| p |", text)

    def test_a_step_beside_its_kernel(self):
        found = {"gpu": {"records": {"used": True, "why_not": None}, "kernels": [{"kind": "kernel", "ms": 0.5, "count": 500}, {"kind": "upload", "ms": 9, "count": 1}]}}
        self.assertEqual(parts.beside(found, 2.2)[0], 1.2)
        found["gpu"]["records"].update(used=False, why_not="another profiler holds it")
        self.assertEqual(parts.beside(found, 2.2)[0], None)
        self.assertIn("another profiler holds it", parts.beside(found, 2.2)[1])
        self.assertEqual(parts.beside({"gpu": {}}, 2.2)[0], None)

    def test_the_record_that_is_kept(self):
        kept = os.path.join(HERE, "..", "..", "cuda", "measured.json")
        with open(kept) as f:
            record = json.load(f)
        self.assertFalse(record["emulated"])
        for point in ("movers", "gemv", "products", "f32", "convolutions", "attention", "depthwise", "networks", "right"):
            self.assertTrue(any(r["value"] is not None for r in of(record, point).values()), point)


if __name__ == "__main__":
    unittest.main(verbosity=0)
