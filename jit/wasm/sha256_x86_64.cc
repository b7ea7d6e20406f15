#include <cpuid.h>
#include <immintrin.h>

#include "jit/wasm/sha256_compress.h"

namespace hindsight::wasm {

bool has_sha_instructions() {
  static const bool present = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned kSsse3 = 1u << 9;
    constexpr unsigned kSse41 = 1u << 19;
    constexpr unsigned kSha = 1u << 29;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSsse3) == 0 || (c & kSse41) == 0) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
  }();
  return present;
}

// sha256rnds2 does two rounds on the state halves {a,b,e,f} and {c,d,g,h}. sha256msg1 and sha256msg2 extend
// the message schedule by four words (Intel SDM volume 2, "SHA256RNDS2").
__attribute__((target("sha,sse4.1,ssse3"))) void compress_with_sha_instructions(
    std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t count) {
  const __m128i byte_order = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  // state holds a..h; the instructions want abef and cdgh, highest lane first.
  const __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data()));
  const __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4));
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

  for (; count != 0; --count, blocks += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), byte_order);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m128i current = w[i & 3];
      const __m128i constants =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSha256RoundConstants + 4 * i));
      const __m128i sum = _mm_add_epi32(current, constants);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) {
        // w[i+4] from w[i] (with w[i+1]), w[i+2..i+3] one word apart, and w[i+3].
        const __m128i last = w[(i + 3) & 3];
        const __m128i middle = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
        const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(current, w[(i + 1) & 3]), middle);
        w[i & 3] = _mm_sha256msg2_epu32(partial, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }

  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace hindsight::wasm
