/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_KEYED_H_INCLUDED
#define ZCP_KEYED_H_INCLUDED

#include "cache.h"
#include "history.h"
#include "key.h"
#include "predictor.h"
#include "stream.h"

namespace zc::predict {

/**
 * The default engine. Messages do not arrive in the order they are requested,
 * but those of one sender, tag and communicator do; so each key has its own
 * substream of addresses, and only zcp_next() looks at the stream of all.
 *
 * Every receive is learned under two keys, with and without its size: buffers
 * usually go with an exact size, but where sizes drift (particles, adaptive
 * meshes) only the substream of any size repeats. The one that was right more
 * often of late answers.
 *
 * Nearly all keys have one buffer: they take a few dozen bytes. A key gets a
 * history when its address changes and loses it when it has settled; a key of
 * any size only if it has seen several sizes, else the exact one knows as much.
 */
class keyed final : public predictor {
  public:
    explicit keyed(size_t max_bytes);

    void learn(const zcp_receive_t &receive) noexcept override;
    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    bool locate(const query &q, guess &out) const noexcept override;
    size_t bytes() const noexcept override;

  private:
    struct substream {
        uint64_t last;
        uint32_t repeats;       /* times in a row last was seen, saturating; 0: nothing known */
        float trust;            /* decayed share of receives that went where expected */
        uint32_t varies;        /* 1: there is, or was before it aged out, a history */
        uint32_t keeps_history; /* 1: an exact key, or one of any size that has seen several */
    };

    void learn_key(const key &key, uint64_t hash, substream &sub, uint64_t addr);
    void learn_varying(const key &key, uint64_t hash, substream &sub, uint64_t addr);
    uint64_t expected(const key &key, uint64_t hash, const substream &sub, uint32_t nth) const;

    cache<key, substream> substreams_;
    cache<key, history> histories_;
    stream stream_;
};

} // namespace zc::predict

#endif
