/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_IMAGE_H_INCLUDED
#define ZC_HOLDER_IMAGE_H_INCLUDED

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "descriptor.h"
#include "stream.h"

namespace zc::holder {

/**
 * A rank on its way, as a stream: what holders know of it, and the files that CRIU has made.
 *
 *     {"manifest": BYTES}\n CBOR   {"name": NAME, "bytes": BYTES}\n content ...   {"crc": N}\n
 *
 * The sum, CRC-32C, is of all bytes before its line.
 */
class image_sender {
  public:
    /** The files of @directory are read as they are sent; its logs are not. Throws error. */
    image_sender(const nlohmann::json &manifest, const std::string &directory);
    /** Pushes what has room. Returns whether all has been pushed. Throws error. */
    bool push(outgoing &to);
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    void add(outgoing &to, std::string_view bytes);
    std::string head_; /* what is pushed first */
    std::vector<std::string> files_;
    std::size_t next_ = 0;
    descriptor file_;
    std::uint64_t bytes_ = 0;
    std::uint32_t crc_ = 0;
    bool done_ = false;
};

class image_receiver {
  public:
    explicit image_receiver(std::string directory) : directory_(std::move(directory)) {}
    /** Takes what has come. Returns the manifest when all has. Throws error. */
    std::optional<nlohmann::json> take(incoming &from);

  private:
    bool take_content(const std::string &bytes, std::size_t &at);
    bool take_line(const std::string &bytes, std::size_t &at);
    std::string directory_;
    nlohmann::json manifest_;
    std::string manifest_bytes_;
    bool in_manifest_ = false, done_ = false;
    std::uint64_t left_ = 0; /* of what is being read */
    descriptor file_;
    std::uint32_t crc_ = 0;
};

} // namespace zc::holder

#endif
