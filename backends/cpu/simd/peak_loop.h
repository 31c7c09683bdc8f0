#pragma once
// Twelve independent accumulators by name: an array of them would live in memory, not in registers.

#define RB_EACH_12(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
