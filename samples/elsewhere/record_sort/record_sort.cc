// Sorts records the ways programs do: with qsort and memcmp by a key of ten bytes, and with std::sort by several columns
// in turn. What was sorted in parts is merged. Binary searches then join the results.
//
// Arguments: thousands of long records, thousands of rows, thousands of searches, repetitions.
#include <algorithm>
#include <iterator>
#include <vector>

#include "../../common/sample.h"

namespace {

// A record as sorting contests have it: ten bytes of key, the rest is carried along.
struct Record {
  unsigned char key[10];
  unsigned char payload[90];
};

struct Row {
  uint64_t id;
  uint32_t region;
  uint32_t customer;
  int64_t amount;
  uint32_t day;
};

int compare_records(const void* a, const void* b) {
  const Record* x = static_cast<const Record*>(a);
  const Record* y = static_cast<const Record*>(b);
  if (const int order = memcmp(x->key, y->key, sizeof x->key)) return order;
  return memcmp(x->payload, y->payload, 8);
}

bool by_customer(const Row& a, const Row& b) {
  return a.customer < b.customer;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t records = size_t{1000} * argument(argc, argv, 1, 700);
  const size_t rows = size_t{1000} * argument(argc, argv, 2, 1500);
  const size_t searches = size_t{1000} * argument(argc, argv, 3, 1500);
  const uint32_t repetitions = argument(argc, argv, 4, 1);

  uint64_t seed = 1987;
  uint64_t checksum = 0;
  Record* table = static_cast<Record*>(malloc(records * sizeof(Record)));
  if (table == nullptr) return 3;

  for (uint32_t r = 0; r < repetitions; ++r) {
    for (size_t i = 0; i < records; ++i) {
      Record& record = table[i];
      for (unsigned char& byte : record.key) byte = static_cast<unsigned char>(' ' + next_random(&seed) % 95);
      // Every sixteenth begins with letters that others begin with as well.
      if (i % 16 == 0) memcpy(record.key, "AAAAAA", 6);
      const uint64_t number = i + (checksum & 0xff);
      memcpy(record.payload, &number, sizeof number);
      memset(record.payload + 8, static_cast<int>('A' + i % 26), sizeof record.payload - 8);
    }
    qsort(table, records, sizeof(Record), compare_records);
    for (size_t i = 0; i < records; i += 101) {
      uint64_t number;
      memcpy(&number, table[i].payload, sizeof number);
      checksum = mix(checksum, number + table[i].key[9] + table[i].payload[50]);
    }

    std::vector<Row> sales;
    sales.reserve(rows);
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t bits = next_random(&seed);
      sales.push_back(
          {i, static_cast<uint32_t>(bits % 200), static_cast<uint32_t>((bits >> 8) % (rows / 4 + 1)),
           static_cast<int64_t>((bits >> 32) % 100000) - 20000, static_cast<uint32_t>((bits >> 50) % 365)});
    }

    // A report: by region, in it the largest amounts first.
    std::sort(sales.begin(), sales.end(), [](const Row& a, const Row& b) {
      if (a.region != b.region) return a.region < b.region;
      if (a.amount != b.amount) return a.amount > b.amount;
      return a.id < b.id;
    });
    int64_t total = 0;
    for (size_t i = 0; i < sales.size(); ++i) {
      if (i == 0 || sales[i].region != sales[i - 1].region) {
        checksum = mix(checksum, static_cast<uint64_t>(total));
        total = 0;
      }
      total += sales[i].amount;
      if (i % 997 == 0) checksum = mix(checksum, sales[i].id);
    }

    // Four quarters sorted by day on their own, as runs on disk would be, then merged in pairs.
    auto earlier = [](const Row& a, const Row& b) { return a.day != b.day ? a.day < b.day : a.id < b.id; };
    const auto quarter = [&sales](size_t i) { return sales.begin() + sales.size() * i / 4; };
    for (size_t i = 0; i < 4; ++i) std::sort(quarter(i), quarter(i + 1), earlier);
    std::vector<Row> halves, merged;
    halves.reserve(rows);
    merged.reserve(rows);
    std::merge(quarter(0), quarter(1), quarter(1), quarter(2), std::back_inserter(halves), earlier);
    const size_t middle = halves.size();
    std::merge(quarter(2), quarter(3), quarter(3), quarter(4), std::back_inserter(halves), earlier);
    std::merge(halves.begin(), halves.begin() + middle, halves.begin() + middle, halves.end(),
               std::back_inserter(merged), earlier);
    for (size_t i = 0; i < merged.size(); i += 997) checksum = mix(checksum, merged[i].id);

    // What each of some customers spent: the rows of one lie side by side.
    std::sort(merged.begin(), merged.end(), [](const Row& a, const Row& b) {
      return a.customer != b.customer ? a.customer < b.customer : a.id < b.id;
    });
    for (size_t i = 0; i < searches; ++i) {
      Row wanted{};
      wanted.customer = random_below(&seed, static_cast<uint32_t>(rows / 4 + 1));
      const auto [first, last] = std::equal_range(merged.begin(), merged.end(), wanted, by_customer);
      int64_t spent = 0;
      for (auto row = first; row != last; ++row) {
        if (row->amount > 0) spent += row->amount;
      }
      checksum = checksum * 31 + static_cast<uint64_t>(spent);
    }

    // Which of some keys are among the records.
    for (size_t i = 0; i < searches / 2; ++i) {
      Record wanted = table[random_below(&seed, static_cast<uint32_t>(records))];
      if (i % 2 == 0) wanted.key[9] ^= 1;
      const Record* found = std::lower_bound(
          table, table + records, wanted,
          [](const Record& a, const Record& b) { return memcmp(a.key, b.key, sizeof a.key) < 0; });
      if (found == table + records || memcmp(found->key, wanted.key, sizeof wanted.key) != 0) continue;
      checksum += found->payload[30];
    }
    checksum = mix(checksum, r);
  }
  free(table);
  return report("record_sort", checksum);
}
