#include "runtime/instance/exception_heap.h"

#include <gtest/gtest.h>

namespace hindsight::rt {
namespace {

const Tag kNumber{{{wasm::ValType::kI32, wasm::ValType::kI64}, {}}, 0, "number"};
const Tag kCarrier{{{wasm::ValType::kExnRef}, {}}, 0, "carrier"};

jit::ExceptionRecord* make(ExceptionHeap& heap, uint64_t number) {
  const uint64_t values[] = {number, number};
  return heap.make(kNumber, values);
}
uint64_t word(const void* p) {
  return reinterpret_cast<uint64_t>(p);
}

TEST(ExceptionHeap, KeepsTagAndValues) {
  ExceptionHeap heap;
  jit::ExceptionRecord* e = make(heap, 0xbad0'0000'0007);
  EXPECT_EQ(&tag_of(*e), &kNumber);
  EXPECT_EQ(jit::exception_values(e)[0], 7u) << "the upper half of an i32 means nothing";
  EXPECT_EQ(jit::exception_values(e)[1], 0xbad0'0000'0007u);
}

TEST(ExceptionHeap, FreesWhatNoWordRefersTo) {
  ExceptionHeap heap;
  jit::ExceptionRecord* kept = make(heap, 1);
  make(heap, 2);
  jit::ExceptionRecord* by_its_inside = make(heap, 3);
  const uint64_t carried = word(make(heap, 4));
  jit::ExceptionRecord* carrier = heap.make(kCarrier, &carried);
  make(heap, 5);
  heap.begin_marking();
  for (const uint64_t root : {word(kept), word(jit::exception_values(by_its_inside) + 1), word(carrier),
                              word(kept), uint64_t{0}, ~uint64_t{0}, uint64_t{1}})
    heap.mark(root);
  heap.finish_marking();
  EXPECT_EQ(heap.count(), 4u);
  EXPECT_EQ(jit::exception_values(reinterpret_cast<jit::ExceptionRecord*>(carried))[0], 4u);
  EXPECT_EQ(jit::exception_values(by_its_inside)[0], 3u);
  heap.begin_marking();
  heap.finish_marking();
  EXPECT_EQ(heap.count(), 0u);
  EXPECT_EQ(heap.bytes(), 0u);
  heap.begin_marking();
  heap.mark(word(&heap));
  heap.finish_marking();
}

TEST(ExceptionHeap, AsksToBeCollectedInTimeForItsBound) {
  ExceptionHeap heap;
  std::vector<uint64_t> roots;
  size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (heap.is_full()) {
      heap.begin_marking();
      heap.mark(roots);
      heap.finish_marking();
    }
    jit::ExceptionRecord* e = make(heap, 1);
    if (i % 100 == 0) roots.push_back(word(e));
    most = std::max(most, heap.bytes());
  }
  const size_t one = heap.bytes() / heap.count();
  EXPECT_LE(most, ExceptionHeap::kLeastBytes + 2 * roots.size() * one + one);
  EXPECT_GT(heap.collections(), 10u);
}

}  // namespace
}  // namespace hindsight::rt
