#!/usr/bin/env python3
"""metal.py finds each difference that would break a message."""

import unittest

import metal

TABLE = """
#define RB_METAL_MESSAGES(F) \\
  F(new_buffer, "MTLDevice", "newBufferWithLength:options:", Id, (uint64_t, uint64_t)) \\
  F(dispatch, "MTLComputeCommandEncoder", \\
    "dispatchThreadgroups:threadsPerThreadgroup:", void, (MTLSize, MTLSize))
inline constexpr uint64_t kUsage = 3;  // MTLUsageRead, MTLUsageWrite
"""
METADATA = """
r(b"NSObject", b"newBufferWithLength:options:",
  {"required": True, "retval": {"type": b"@"}, "arguments": {2: {"type": b"Q"}, 3: {"type": b"Q"}}})
r(b"NSObject", b"dispatchThreadgroups:threadsPerThreadgroup:",
  {"retval": {"type": b"v"}, "arguments": {2: {"type": b"{MTLSize=QQQ}"}, 3: {"type": b"{MTLSize=QQQ}"}}})
enums = "$MTLUsageRead@1$MTLUsageWrite@2$"
"""


class DifferencesTest(unittest.TestCase):
    def problems(self, table, metadata=METADATA):
        known = metal.metadata_of(metadata)
        found = [p for row in metal.table_of(table) for p in metal.differences(*row, known)]
        return found + list(metal.wrong_values(table, metadata))

    def test_agreement(self):
        self.assertEqual(len(metal.table_of(TABLE)), 2)
        self.assertEqual(self.problems(TABLE), [])

    def test_each_difference(self):
        for old, new, told in [("Id, (uint64_t", "Id, (int64_t", "argument 1 is q here, Q there"),
                               ("Id, (uint64_t, ", "Id, (", "has 1 arguments here"),
                               ("void, (MTLSize", "Id, (MTLSize", "result is @ here, v there"),
                               ("MTLSize, MTLSize", "MTLSize, NSRange", "argument 2 is {_NSRange=QQ} here, {MTLSize=QQQ} there"),
                               ("newBufferWithLength:", "newBufferOfLength:", "has no newBufferOfLength:options:"),
                               ("= 3", "= 4", "MTLUsageRead + MTLUsageWrite is not 4"),
                               ("// MTLUsageRead", "// MTLUsageLoad", "names MTLUsageLoad, which the metadata lacks")]:
            found = self.problems(TABLE.replace(old, new, 1))
            self.assertTrue(any(told in problem for problem in found), (told, found))


if __name__ == "__main__":
    unittest.main()
