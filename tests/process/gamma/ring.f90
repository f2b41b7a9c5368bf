! SPDX-License-Identifier: BSD-3-Clause
! Four instances in a ring, in Fortran: each adds its number to what comes from the one before it.
! Instance 0 prints the sum. Handlers are external subroutines.
program ring
  use gamma_ports
  implicit none
  external :: on_token, on_error
  integer, parameter :: token_port = 3
  integer :: token, node, nodes, next, pid, status
  common /received/ token
  if (gamma_init(0) /= 0) stop 1
  node = gamma_my_node()
  nodes = gamma_how_many_nodes()
  pid = gamma_my_par_pid()
  next = mod(node + 1, nodes)
  if (gamma_setport(token_port, next, pid, token_port, on_token, on_error, token, 4) /= 0) stop 2
  if (gamma_sync() /= 0) stop 3
  if (node == 0) then
    status = gamma_send(token_port, 100, 4)
    if (status /= 0) stop 4
  end if
  if (gamma_wait(token_port, 1) /= 0) stop 5
  if (node /= 0) then
    if (gamma_send(token_port, token + node, 4) /= 0) stop 6
  else
    print '(a, i0)', 'ring: ', token
  end if
  ! Longer than the buffer: the error handler runs, and says which port and why.
  if (gamma_sync() /= 0) stop 7
  if (node == 1) then
    if (gamma_send(token_port, [1, 2, 3], 12) /= 0) stop 8
  else if (node == 2) then
    if (gamma_wait(token_port, 1) /= -1) stop 9
    print '(a, i0)', 'ring: error ', gamma_test(200)
  end if
  if (gamma_sync() /= 0) stop 10
  if (gamma_exit() /= 0) stop 11
end program ring

subroutine on_token()
  use gamma_ports
  implicit none
  integer :: status
  status = gamma_signal(gamma_get_active_port())
end subroutine on_token

subroutine on_error()
  use gamma_ports
  implicit none
  integer :: status, n
  do n = 1, gamma_get_errno()
    status = gamma_signal(200)
  end do
  status = gamma_sigerr(gamma_get_active_port())
  status = gamma_signal(gamma_get_active_port())
end subroutine on_error
