! SPDX-License-Identifier: BSD-3-Clause
! libgamma for Fortran: the functions of gamma.h as integer functions. Compile this file with the
! program and link with libgamma. Arguments are default integers; handlers are external subroutines
! without arguments. Buffers and data are variables or arrays of any type; lengths are bytes. docs/man/gamma.3 explains each function.
module gamma_ports
  implicit none
  integer, parameter :: gamma_broadcast = 255
  integer, parameter :: gamma_err_framelost = 2
  integer, parameter :: gamma_err_msgtoolong = 3
  integer, parameter :: gamma_err_sendfailure = 4

  interface
    integer function gamma_init(num_nodes)
      integer, intent(in) :: num_nodes
    end function
    integer function gamma_exit()
    end function
    ! A handler that is gamma_no_handler is none, and no buffer has the length 0.
    integer function gamma_setport(port, dest_node, dest_par_pid, dest_port, handler_in, &
                                   handler_err, buffer, length)
      integer, intent(in) :: port, dest_node, dest_par_pid, dest_port, length
      external :: handler_in, handler_err
      !GCC$ attributes no_arg_check :: buffer
      type(*) :: buffer
    end function
    subroutine gamma_no_handler()
    end subroutine
    integer function gamma_attach_buffer(port, buffer)
      integer, intent(in) :: port
      !GCC$ attributes no_arg_check :: buffer
      type(*) :: buffer
    end function
    integer function gamma_send(port, data, length)
      integer, intent(in) :: port, length
      !GCC$ attributes no_arg_check :: data
      type(*), intent(in) :: data
    end function
    integer function gamma_send_fast(port, data, length)
      integer, intent(in) :: port, length
      !GCC$ attributes no_arg_check :: data
      type(*), intent(in) :: data
    end function
    integer function gamma_send_flowctl(port, data, length)
      integer, intent(in) :: port, length
      !GCC$ attributes no_arg_check :: data
      type(*), intent(in) :: data
    end function
    integer function gamma_signal(sem)
      integer, intent(in) :: sem
    end function
    integer function gamma_sigerr(sem)
      integer, intent(in) :: sem
    end function
    integer function gamma_test(sem)
      integer, intent(in) :: sem
    end function
    integer function gamma_wait(sem, n)
      integer, intent(in) :: sem, n
    end function
    integer function gamma_atomic(routine)
      external :: routine
    end function
    integer function gamma_sync()
    end function
    integer function gamma_my_par_pid()
    end function
    integer function gamma_my_node()
    end function
    integer function gamma_how_many_nodes()
    end function
    integer function gamma_mlock(buffer, length)
      !GCC$ attributes no_arg_check :: buffer
      type(*) :: buffer
      integer, intent(in) :: length
    end function
    integer function gamma_munlock(buffer, length)
      !GCC$ attributes no_arg_check :: buffer
      type(*) :: buffer
      integer, intent(in) :: length
    end function
    integer function gamma_munlockall()
    end function
    ! gamma_active_port and gamma_errno.
    integer function gamma_get_active_port()
    end function
    integer function gamma_get_errno()
    end function
    ! The clock of gamma_time(), in microseconds.
    double precision function gamma_microseconds()
    end function
  end interface
end module gamma_ports
