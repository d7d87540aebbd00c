[#] start of __file__
dnl SPDX-License-Identifier: BSD-3-Clause
dnl MPICH_SUBCFG_AFTER=src/mpid/ch4

AC_DEFUN([PAC_SUBCFG_PREREQ_]PAC_SUBCFG_AUTO_SUFFIX,[
    AM_COND_IF([BUILD_CH4],[
        for net in $ch4_netmods ; do
            AS_CASE([$net],[zc],[build_ch4_netmod_zc=yes])
            if test $net = "zc" ; then
                AC_DEFINE(HAVE_CH4_NETMOD_ZC,1,[zc netmod is built])
                if test "$build_ch4_locality_info" != "yes" ; then
                    AC_DEFINE(MPIDI_BUILD_CH4_LOCALITY_INFO, 1, [CH4 should build locality info])
                    build_ch4_locality_info="yes"
                fi
            fi
        done
    ])
    AM_CONDITIONAL([BUILD_CH4_NETMOD_ZC],[test "X$build_ch4_netmod_zc" = "Xyes"])
])dnl

AC_DEFUN([PAC_SUBCFG_BODY_]PAC_SUBCFG_AUTO_SUFFIX,[
AM_COND_IF([BUILD_CH4_NETMOD_ZC],[
    AC_MSG_NOTICE([RUNNING CONFIGURE FOR ch4:zc])

    dnl 1.11 is the first with ucp_am_send_nbx, ucp_am_recv_data_nbx and
    dnl rendezvous for active messages all stable.
    AC_MSG_CHECKING([for UCX 1.11 or later])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <ucp/api/ucp.h>], [
                       #if UCP_VERSION(UCP_API_MAJOR, UCP_API_MINOR) < UCP_VERSION(1, 11)
                       #error
                       #endif
                       return 0;])],[zc_ucx=yes],[zc_ucx=no])
    AC_MSG_RESULT([$zc_ucx])
    if test "$zc_ucx" = "no" ; then
        AC_MSG_ERROR([ch4:zc needs UCX 1.11 or later])
    fi
    PAC_LIBS_ADD([-lucp -lucs])

    AC_CHECK_HEADERS([zc/zc.h zcp/predictor.h zcl/lane.h],[],
                     [AC_MSG_ERROR([ch4:zc needs the headers of libzc, libzcpredict and libzclane])])
    PAC_LIBS_ADD([-lzc -lzcpredict -lzclane])
])dnl end AM_COND_IF(BUILD_CH4_NETMOD_ZC,...)
])dnl end _BODY

[#] end of __file__
