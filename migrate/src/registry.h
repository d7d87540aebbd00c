/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <map>
#include <string>

#include "array.h"

namespace zc::migrate {

/** The registered arrays of this process. Throws error; unchanged then. */
class registry {
  public:
    const array &add(const std::string &name, void *address, std::uint64_t count, element type)
    {
        return add({name, static_cast<std::byte *>(address), count, type});
    }
    const array &add(array wanted);
    /** The same name and type elsewhere, or of another length. */
    const array &replace(const std::string &name, void *address, std::uint64_t count);
    void remove(const std::string &name);

    const array *find(const std::string &name) const;
    const std::map<std::string, array> &all() const noexcept { return arrays_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

    /** Throws -EFAULT naming the first array whose memory is not mapped readable (any more). */
    void check_mapped() const;

  private:
    void check(const array &wanted, const array *replaced) const;
    void place(const array &one);
    void displace(const array &one);

    std::map<std::string, array> arrays_;
    std::map<std::uintptr_t, const array *> places_; /* by where they begin; none overlap */
    std::uint64_t bytes_ = 0;
};

} // namespace zc::migrate
