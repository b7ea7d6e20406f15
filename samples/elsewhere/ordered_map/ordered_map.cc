// Bookings in a std::map by their time: inserts, look-ups, scans of a range from lower_bound, and erasing what has
// passed or was cancelled. Every step of the red-black tree is a comparison and a node somewhere else.
//
// Arguments: thousands of bookings at first, thousands of operations afterwards.
#include <map>

#include "../../common/sample.h"

struct Booking {
  uint32_t customer;
  uint32_t seats;
  int64_t price;
};

enum Operation { kBook, kFind, kScan, kCancel, kExpire };

class Calendar {
 public:
  bool book(uint64_t time, const Booking& booking) { return bookings_.emplace(time, booking).second; }

  const Booking* find(uint64_t time) const {
    auto it = bookings_.find(time);
    return it != bookings_.end() ? &it->second : nullptr;
  }

  // What the next bookings from a time on bring in, at most `count` of them.
  int64_t revenue(uint64_t from, uint64_t until, uint32_t count) const {
    int64_t sum = 0;
    for (auto it = bookings_.lower_bound(from); it != bookings_.end() && it->first < until; ++it) {
      if (count-- == 0) break;
      sum += it->second.price * it->second.seats;
    }
    return sum;
  }

  // Cancels the first booking at a time or after it, unless it has more seats than may be given back.
  bool cancel(uint64_t time, uint32_t most_seats) {
    auto it = bookings_.lower_bound(time);
    if (it == bookings_.end()) return false;
    if (it->second.seats > most_seats) {
      it->second.seats -= most_seats;
      return false;
    }
    bookings_.erase(it);
    return true;
  }

  size_t expire(uint64_t before, uint32_t most) {
    size_t gone = 0;
    while (!bookings_.empty() && bookings_.begin()->first < before && gone < most) {
      bookings_.erase(bookings_.begin());
      ++gone;
    }
    return gone;
  }

  size_t size() const { return bookings_.size(); }

 private:
  std::map<uint64_t, Booking> bookings_;
};

int main(int argc, char** argv) {
  const uint32_t at_first = 1000 * argument(argc, argv, 1, 2000);
  const uint32_t operations = 1000 * argument(argc, argv, 2, 2000);

  uint64_t seed = 77;
  uint64_t now = 0;
  const uint64_t horizon = static_cast<uint64_t>(at_first) << 8;
  // Bookings begin on the minute, so that there may be one already.
  auto some_time = [&] { return (now + next_random(&seed) % horizon) / 60 * 60; };
  auto some_booking = [&] {
    const uint64_t r = next_random(&seed);
    return Booking{static_cast<uint32_t>(r >> 32), static_cast<uint32_t>(r % 6 + 1),
                   static_cast<int64_t>((r >> 8) % 50000)};
  };

  Calendar calendar;
  uint32_t refused = 0;
  for (uint32_t i = 0; i < at_first; ++i) {
    const uint64_t time = some_time();
    if (!calendar.book(time, some_booking())) ++refused;
  }

  uint64_t checksum = mix(refused, calendar.size());
  static const Operation kMix[16] = {kBook, kFind, kFind, kScan, kBook,   kCancel, kFind, kScan,
                                     kBook, kFind, kScan, kBook, kCancel, kFind,   kBook, kExpire};
  for (uint32_t i = 0; i < operations; ++i) {
    switch (kMix[next_random(&seed) & 15]) {
      case kBook: {
        const uint64_t time = some_time();
        if (!calendar.book(time, some_booking())) ++refused;
        break;
      }
      case kFind:
        if (const Booking* booking = calendar.find(some_time())) checksum += booking->price;
        break;
      case kScan: {
        const uint64_t from = some_time();
        checksum = mix(checksum, calendar.revenue(from, from + 48 * 256, 32));
        break;
      }
      case kCancel:
        if (calendar.cancel(some_time(), 4)) ++checksum;
        break;
      case kExpire:
        now += 1024;
        checksum = mix(checksum, calendar.expire(now, 8));
        break;
    }
  }
  checksum = mix(checksum, refused);
  checksum = mix(checksum, calendar.size());
  return report("ordered_map", checksum);
}
