// Simulates a closed network of queues event by event: customers wait at servers, are served for a random time and
// travel on. What happens next comes out of a std::priority_queue. Each event touches a customer and a server that
// nobody touched for a long time.
//
// Arguments: thousands of customers, thousands of servers, thousands of events.
#include <memory>
#include <queue>
#include <vector>

#include "../../common/sample.h"

namespace {

using Time = double;

enum class Kind : uint8_t { kArrival, kDeparture, kBreakdown, kRepair };

struct Event {
  Time time;
  uint32_t number;  // among events of one time, the one scheduled first comes first
  Kind kind;
  uint32_t customer;
  uint32_t server;
};

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }
};

// An exponential variate from comparisons alone (von Neumann, 1951): no logarithm, whose last bit differs.
double exponential(uint64_t* seed) {
  for (int whole = 0;; ++whole) {
    const double first = random_unit(seed);
    double smallest = first;
    for (int length = 1;; ++length) {
      const double next = random_unit(seed);
      if (next < smallest) {
        smallest = next;
        continue;
      }
      if (length % 2 == 1) return whole + first;
      break;
    }
  }
}

class Simulation {
 public:
  Simulation(uint32_t customers, uint32_t servers) : customers_(customers), servers_(servers) {
    for (Server& server : servers_) server.mean = 0.5 + random_unit(&seed_);
    for (uint32_t c = 0; c < customers; ++c) {
      const Time first = exponential(&seed_);
      schedule(first, Kind::kArrival, c, random_below(&seed_, servers));
    }
    for (uint32_t s = 0; s < servers; s += 16)
      schedule(100 * exponential(&seed_), Kind::kBreakdown, kNobody, s);
  }

  void step() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    Server& server = servers_[event.server];
    switch (event.kind) {
      case Kind::kArrival: {
        Customer& customer = customers_[event.customer];
        customer.arrived = now_;
        customer.next = kNobody;
        if (server.last == kNobody) {
          server.first = event.customer;
        } else {
          customers_[server.last].next = event.customer;
        }
        server.last = event.customer;
        if (++server.length > longest_) longest_ = server.length;
        if (!server.busy && !server.broken) begin_service(event.server);
        break;
      }
      case Kind::kDeparture: {
        Customer& customer = customers_[event.customer];
        customer.waited += now_ - customer.arrived;
        ++customer.visits;
        ++server.served;
        server.busy = false;
        travel(event.customer, event.server);
        if (server.first != kNobody && !server.broken) begin_service(event.server);
        break;
      }
      case Kind::kBreakdown:
        server.broken = true;
        schedule(5 * exponential(&seed_), Kind::kRepair, kNobody, event.server);
        break;
      case Kind::kRepair:
        server.broken = false;
        if (!server.busy && server.first != kNobody) begin_service(event.server);
        schedule(100 * exponential(&seed_), Kind::kBreakdown, kNobody, event.server);
        break;
    }
  }

  uint64_t checksum() const {
    uint64_t sum = mix(longest_, bits_of(now_));
    for (const Customer& customer : customers_) sum = sum * 3 + bits_of(customer.waited) + customer.visits;
    for (const Server& server : servers_) sum = mix(sum, server.served + server.length);
    return mix(sum, events_.size());
  }

  Time now() const { return now_; }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;

  struct Customer {
    Time arrived = 0;
    Time waited = 0;
    uint32_t next = kNobody;  // who waits after this one at the same server
    uint32_t visits = 0;
  };

  struct Server {
    double mean = 1;
    uint32_t first = kNobody, last = kNobody;
    uint32_t length = 0;
    uint32_t served = 0;
    bool busy = false;
    bool broken = false;
  };

  void schedule(Time delay, Kind kind, uint32_t customer, uint32_t server) {
    events_.push({now_ + delay, number_++, kind, customer, server});
  }

  void begin_service(uint32_t index) {
    Server& server = servers_[index];
    const uint32_t customer = server.first;
    server.first = customers_[customer].next;
    if (server.first == kNobody) server.last = kNobody;
    --server.length;
    server.busy = true;
    schedule(server.mean * exponential(&seed_), Kind::kDeparture, customer, index);
  }

  // Most customers go to any server, some stay close, and one of eight takes the shorter of two queues.
  void travel(uint32_t customer, uint32_t from) {
    const uint32_t count = static_cast<uint32_t>(servers_.size());
    const uint32_t choice = random_below(&seed_, 8);
    uint32_t to;
    if (choice < 2) {
      to = (from + 1 + choice) % count;
    } else {
      to = random_below(&seed_, count);
      if (choice == 7) {
        const uint32_t other = random_below(&seed_, count);
        if (servers_[other].length < servers_[to].length) to = other;
      }
    }
    schedule(2 * exponential(&seed_), Kind::kArrival, customer, to);
  }

  uint64_t seed_ = 1986;
  Time now_ = 0;
  uint32_t number_ = 0;
  uint32_t longest_ = 0;
  std::vector<Customer> customers_;
  std::vector<Server> servers_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
};

}  // namespace

int main(int argc, char** argv) {
  const uint32_t customers = 1000 * argument(argc, argv, 1, 2000);
  const uint32_t servers = 1000 * argument(argc, argv, 2, 1000);
  const uint32_t events = 1000 * argument(argc, argv, 3, 6000);

  auto simulation = std::make_unique<Simulation>(customers, servers);
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < events; ++i) {
    simulation->step();
    if (i % 65536 == 0) checksum = mix(checksum, bits_of(simulation->now()));
  }
  return report("event_queue", mix(checksum, simulation->checksum()));
}
