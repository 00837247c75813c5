"""``polyax.experimental.checkify``: errors of values, such as NaNs and failed checks, as results of functions."""

from polyax.experimental.checkify.error import Error as Error
from polyax.experimental.checkify.error import init_error as init_error
from polyax.experimental.checkify.failures import BatchedError as BatchedError
from polyax.experimental.checkify.failures import DivisionByZeroError as DivisionByZeroError
from polyax.experimental.checkify.failures import ErrorCategory as ErrorCategory
from polyax.experimental.checkify.failures import ErrorEffect as ErrorEffect
from polyax.experimental.checkify.failures import FailedCheckError as FailedCheckError
from polyax.experimental.checkify.failures import JaxException as JaxException
from polyax.experimental.checkify.failures import JaxRuntimeError as JaxRuntimeError
from polyax.experimental.checkify.failures import NaNError as NaNError
from polyax.experimental.checkify.failures import OOBError as OOBError
from polyax.experimental.checkify.failures import all_checks as all_checks
from polyax.experimental.checkify.failures import automatic_checks as automatic_checks
from polyax.experimental.checkify.failures import div_checks as div_checks
from polyax.experimental.checkify.failures import float_checks as float_checks
from polyax.experimental.checkify.failures import index_checks as index_checks
from polyax.experimental.checkify.failures import nan_checks as nan_checks
from polyax.experimental.checkify.failures import user_checks as user_checks
from polyax.experimental.checkify.transform import check as check
from polyax.experimental.checkify.transform import check_error as check_error
from polyax.experimental.checkify.transform import checkify as checkify
from polyax.experimental.checkify.transform import debug_check as debug_check
