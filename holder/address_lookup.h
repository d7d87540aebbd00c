/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ADDRESS_LOOKUP_H_INCLUDED
#define ZC_HOLDER_ADDRESS_LOOKUP_H_INCLUDED

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <netinet/in.h>

namespace zc::holder {

/** The addresses of a host, whose name is looked up by a thread, as that may take long: it goes on
 * by itself if this object ends before. IPv4, as ZeroMQ has it here. */
class address_lookup {
  public:
    address_lookup(const std::string &host, std::uint16_t port);
    /** Nothing: not yet. None of them: why() says the reason. */
    std::optional<std::vector<sockaddr_in>> result() const;
    std::string why() const;

  private:
    struct shared;
    std::shared_ptr<shared> shared_;
};

} // namespace zc::holder

#endif
