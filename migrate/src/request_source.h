/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zc::migrate {

/** Where rank 0 has the requests from, one at a time. The other ranks are asked nothing. */
class request_source {
  public:
    virtual ~request_source() = default;
    /** Begin with the request that waits; false if it was withdrawn. */
    virtual bool take() = 0;
    /** When it came. */
    virtual double asked() const noexcept = 0;
    /** When it was found that it could be carried out: from then on ranks are waited for. */
    virtual double examined() const noexcept { return asked(); }
    /** Why what was taken is refused before ranks are called: of the sizes of their states, in
     * bytes, which are looked for if weighs(). "" if it is not. */
    virtual bool weighs() const { return false; }
    virtual std::string too_heavy(const std::vector<std::int64_t> & /*bytes*/) const { return ""; }
    /** It will be answered, soon: false if it is too late. */
    virtual bool hold() = 0;
    /** It is over, with @outcome. */
    virtual void finish(const std::string &outcome) = 0;
};

} // namespace zc::migrate
