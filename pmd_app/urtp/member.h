#pragma once

#include "urtp/transport.h"
