// The most multiply-adds in float that a core does in a second, for other figures to be a share of.
#pragma once

// In GFLOP/s (a multiply-add is two), over about `milliseconds`, on the calling thread.
double fma_peak(double milliseconds);
