/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

std::vector<zc::test::backend> zc::test::backends_under_test()
{
    return {backend::mremap, backend::fake, backend::mixed};
}
