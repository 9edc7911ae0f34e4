// Floats at cache lines, in memory that grows and stays.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace cascade::attend {

class Buffer {
  public:
    // Room for n floats; what was there is lost where it grows. May throw std::bad_alloc.
    float * need(int64_t n) {
        if (n > capacity) {
            floats.reset(); // never both at once
            capacity = 0;
            floats.reset(static_cast<float *>(::operator new(static_cast<size_t>(n) * sizeof(float), line)));
            capacity = n;
        }
        return floats.get();
    }
    float * get() const { return floats.get(); }

  private:
    static constexpr std::align_val_t line{ 64 };
    struct Free {
        void operator()(float * memory) const { ::operator delete(memory, line); }
    };

    std::unique_ptr<float[], Free> floats;
    int64_t capacity = 0;
};

} // namespace cascade::attend
