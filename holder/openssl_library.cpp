/* SPDX-License-Identifier: BSD-3-Clause */
#include "openssl_library.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

namespace zc::holder {

OSSL_LIB_CTX *openssl_library()
{
    /* libssl would have the settings of the host for all contexts. */
    static const int is_without = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    static OSSL_LIB_CTX *const own = is_without == 1 ? OSSL_LIB_CTX_new() : nullptr;
    return own;
}

} // namespace zc::holder
