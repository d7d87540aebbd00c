/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>

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
    /** It will be answered, soon: false if it is too late. */
    virtual bool hold() = 0;
    /** It is over, with @outcome. */
    virtual void finish(const std::string &outcome) = 0;
};

} // namespace zc::migrate
