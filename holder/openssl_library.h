/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_OPENSSL_LIBRARY_H_INCLUDED
#define ZC_HOLDER_OPENSSL_LIBRARY_H_INCLUDED

#include <openssl/types.h>

namespace zc::holder {

/** OpenSSL without the host's configuration, which may want FIPS 140 and so no Poly1305. It is
 * never freed: threads may use it to the end. nullptr, without memory: with the configuration. */
OSSL_LIB_CTX *openssl_library();

} // namespace zc::holder

#endif
