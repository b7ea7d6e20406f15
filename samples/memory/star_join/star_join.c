// A star join with a grouped total. Each sale names a product, each product a supplier, and the supplier's
// country and discount decide where and how much is added. Two dependent random look-ups, then a little
// arithmetic.
//
// Arguments: log2 of the number of products, log2 of the number of suppliers, log2 of the number of sales,
// repetitions.
#include "../../common/sample.h"

typedef struct {
  uint32_t supplier;
  uint32_t price;
  uint32_t weight;
  uint32_t category;
} Product;

typedef struct {
  uint32_t country;
  uint32_t discount;
  uint32_t freight;
  uint32_t rating;
} Supplier;

typedef struct {
  uint32_t product;
  uint32_t quantity;
} Sale;

enum { kCountries = 256 };

KERNEL static void total(const Sale* sales, uint32_t count, const Product* products,
                         const Supplier* suppliers, uint64_t* totals) {
  for (uint32_t i = 0; i < count; ++i) {
    const Product* product = &products[sales[i].product];
    const Supplier* supplier = &suppliers[product->supplier];
    const uint32_t gross = product->price * sales[i].quantity;
    const uint32_t net = gross - (uint32_t)(((uint64_t)gross * supplier->discount) >> 8);
    const uint32_t freight = product->weight * supplier->freight / 16 + (supplier->rating > 3 ? 0 : 25);
    totals[supplier->country] += net + freight;
  }
}

int main(int argc, char** argv) {
  const uint32_t product_count = 1u << argument(argc, argv, 1, 23);
  const uint32_t supplier_count = 1u << argument(argc, argv, 2, 23);
  const uint32_t sale_count = 1u << argument(argc, argv, 3, 23);
  const uint32_t repetitions = argument(argc, argv, 4, 6);

  uint64_t seed = 13;
  Product* products = allocate(product_count, sizeof *products);
  for (uint32_t i = 0; i < product_count; ++i) {
    const uint64_t random = next_random(&seed);
    products[i].supplier = (uint32_t)random & (supplier_count - 1);
    products[i].price = (uint32_t)(random >> 32) & 0xffff;
    products[i].weight = (uint32_t)(random >> 48) & 0xff;
    products[i].category = (uint32_t)(random >> 56);
  }
  Supplier* suppliers = allocate(supplier_count, sizeof *suppliers);
  for (uint32_t i = 0; i < supplier_count; ++i) {
    const uint64_t random = next_random(&seed);
    suppliers[i].country = (uint32_t)random % kCountries;
    suppliers[i].discount = (uint32_t)(random >> 16) & 0x3f;
    suppliers[i].freight = (uint32_t)(random >> 32) & 0xff;
    suppliers[i].rating = (uint32_t)(random >> 48) & 7;
  }
  Sale* sales = allocate(sale_count, sizeof *sales);
  for (uint32_t i = 0; i < sale_count; ++i) {
    const uint64_t random = next_random(&seed);
    sales[i].product = (uint32_t)random & (product_count - 1);
    sales[i].quantity = 1 + ((uint32_t)(random >> 32) & 15);
  }

  uint64_t totals[kCountries] = {0};
  for (uint32_t r = 0; r < repetitions; ++r) total(sales, sale_count, products, suppliers, totals);

  uint64_t checksum = 0;
  for (uint32_t c = 0; c < kCountries; ++c) checksum = mix(checksum, totals[c]);
  return report("star_join", checksum);
}
