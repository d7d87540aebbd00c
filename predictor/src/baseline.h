/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_BASELINE_H_INCLUDED
#define ZCP_BASELINE_H_INCLUDED

#include "cache.h"
#include "key.h"
#include "predictor.h"

namespace zc::predict {

/** What makes two messages alike. */
enum class alike { sender_and_tag, envelope, sender_and_size };

/**
 * The honest baseline: a message goes where the last one like it went. Knows no
 * order of receives: next() repeats the last one.
 */
class last_address final : public predictor {
  public:
    last_address(size_t max_bytes, alike alike);

    void learn(const zcp_receive_t &receive) noexcept override;
    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    bool locate(const query &q, guess &out) const noexcept override;
    zcp_cause_t cause() const noexcept override { return ZCP_CAUSE_CONSTANT; }
    size_t bytes() const noexcept override;

  private:
    key key_of(const zcp_envelope_t &envelope) const;

    alike alike_;
    bool any_ = false;
    zcp_receive_t last_{};
    cache<key, uint64_t> addresses_;
};

/** Always page offset 0x10, where glibc puts a long malloc. Answers an offset, not an address. */
class malloc_offset final : public predictor {
  public:
    void learn(const zcp_receive_t &) noexcept override {}
    uint32_t next(std::span<zcp_receive_t>) const noexcept override { return 0; }
    bool locate(const query &q, guess &out) const noexcept override;
    uint32_t modulus() const noexcept override { return kPageBytes; }
    zcp_cause_t cause() const noexcept override { return ZCP_CAUSE_FIXED; }
    size_t bytes() const noexcept override { return sizeof(*this); }
};

} // namespace zc::predict

#endif
