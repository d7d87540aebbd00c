/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_SPILL_FILE_H_INCLUDED
#define ZCT_SPILL_FILE_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <span>

namespace zc::zct {

/** Bytes that do not fit into memory. The file is in TMPDIR, or in /var/tmp, which unlike /tmp is
 * no memory itself; it has no name, so that nothing is left of it. Throws error. */
class spill_file {
  public:
    spill_file() = default;
    ~spill_file();
    spill_file(const spill_file &) = delete;
    spill_file &operator=(const spill_file &) = delete;

    std::uint64_t size() const { return size_; }
    void append(std::span<const std::byte> bytes);
    void read(std::uint64_t at, std::span<std::byte> bytes) const;

  private:
    int fd_ = -1; /* made when there is something to write */
    std::uint64_t size_ = 0;
};

} // namespace zc::zct

#endif
