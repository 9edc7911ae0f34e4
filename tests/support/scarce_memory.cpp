#include "support/scarce_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace cascade::test {

namespace {

std::atomic<int64_t> allocations_left{ -1 }; // below 0: any number
std::atomic<bool> scarce{ false };
std::atomic<bool> out_of_memory{ false };
std::atomic<int64_t> in_use{ 0 };

void * allocate(size_t size, size_t alignment) noexcept {
    if (scarce && allocations_left.fetch_sub(1) <= 0) {
        out_of_memory = true;
        return nullptr;
    }
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    void * memory = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
    in_use += memory != nullptr ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
    return memory;
}

void give_back(void * memory) noexcept {
    in_use -= memory != nullptr ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
    std::free(memory);
}

} // namespace

ScarceMemory::ScarceMemory(int64_t allocations) {
    allocations_left = allocations;
    out_of_memory = false;
    scarce = true;
}

ScarceMemory::~ScarceMemory() { scarce = false; }

bool ScarceMemory::ran_out() { return out_of_memory; }

int64_t bytes_in_use() { return in_use; }

void * allocate_or_throw(size_t size, size_t alignment) {
    void * memory = allocate(size, alignment);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void * try_to_allocate(size_t size) noexcept { return allocate(size, alignof(std::max_align_t)); }

void release(void * memory) noexcept { give_back(memory); }

} // namespace cascade::test

using cascade::test::allocate_or_throw;
using cascade::test::release;
using cascade::test::try_to_allocate;

constexpr size_t usual = alignof(std::max_align_t);

// NOLINTBEGIN(misc-new-delete-overloads)
void * operator new(size_t size) { return allocate_or_throw(size, usual); }
void * operator new[](size_t size) { return allocate_or_throw(size, usual); }
void * operator new(size_t size, const std::nothrow_t &) noexcept { return try_to_allocate(size); }
void * operator new[](size_t size, const std::nothrow_t &) noexcept { return try_to_allocate(size); }
void * operator new(size_t size, std::align_val_t at) { return allocate_or_throw(size, static_cast<size_t>(at)); }
void * operator new[](size_t size, std::align_val_t at) { return allocate_or_throw(size, static_cast<size_t>(at)); }
void operator delete(void * memory) noexcept { release(memory); }
void operator delete[](void * memory) noexcept { release(memory); }
void operator delete(void * memory, size_t /*size*/) noexcept { release(memory); }
void operator delete[](void * memory, size_t /*size*/) noexcept { release(memory); }
void operator delete(void * memory, const std::nothrow_t & /*tag*/) noexcept { release(memory); }
void operator delete[](void * memory, const std::nothrow_t & /*tag*/) noexcept { release(memory); }
void operator delete(void * memory, std::align_val_t /*at*/) noexcept { release(memory); }
void operator delete[](void * memory, std::align_val_t /*at*/) noexcept { release(memory); }
void operator delete(void * memory, size_t /*size*/, std::align_val_t /*at*/) noexcept { release(memory); }
void operator delete[](void * memory, size_t /*size*/, std::align_val_t /*at*/) noexcept { release(memory); }
// NOLINTEND(misc-new-delete-overloads)
