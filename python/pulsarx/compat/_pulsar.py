"""`_pulsar`: the names of the official client's native module."""

from pulsarx._pycore.message.encryption_context import EncryptionContext, EncryptionKey
from pulsarx.compat.authentication import (
    Authentication,
    AuthenticationAthenz,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsarx.compat.builders import (
    DeadLetterPolicyBuilder,
    Error,
    KeySharedPolicy,
    MessageBatch,
    MessageBuilder,
    TopicRegex,
)
from pulsarx.compat.configurations import (
    ClientConfiguration,
    ConsumerConfiguration,
    ProducerConfiguration,
    ReaderConfiguration,
    TableViewConfiguration,
)
from pulsarx.compat.handles import Client, Consumer, Producer, Reader, TableView
from pulsarx.enumerations import (
    BatchingType,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    LoggerLevel,
    PartitionsRoutingMode,
    ProducerAccessMode,
    RegexSubscriptionMode,
    SchemaType,
)
from pulsarx.errors import (
    AlreadyClosed,
    AuthenticationError,
    AuthorizationError,
    BrokerMetadataError,
    BrokerPersistenceError,
    ChecksumError,
    ConnectError,
    ConsumerAssignError,
    ConsumerBusy,
    ConsumerNotFound,
    ConsumerNotInitialized,
    CryptoError,
    CumulativeAcknowledgementNotAllowedError,
    ErrorGettingAuthenticationData,
    IncompatibleSchema,
    Interrupted,
    InvalidConfiguration,
    InvalidMessage,
    InvalidTopicName,
    InvalidTxnStatusError,
    InvalidUrl,
    LookupError,
    MemoryBufferIsFull,
    MessageTooBig,
    NotAllowedError,
    NotConnected,
    OperationNotSupported,
    ProducerBlockedQuotaExceededError,
    ProducerBlockedQuotaExceededException,
    ProducerBusy,
    ProducerFenced,
    ProducerNotInitialized,
    ProducerQueueIsFull,
    PulsarException,
    ReadError,
    ServiceUnitNotReady,
    SubscriptionNotFound,
    Timeout,
    TooManyLookupRequestException,
    TopicNotFound,
    TopicTerminated,
    TransactionConflict,
    TransactionCoordinatorNotFoundError,
    TransactionNotFound,
    UnknownError,
    UnsupportedVersionError,
)
from pulsarx.message import Message
from pulsarx.message_id import MessageId
from pulsarx.options.authentication import AbstractCryptoKeyReader, CryptoKeyReader
from pulsarx.options.consumer_policies import BatchReceivePolicy, DeadLetterPolicy
from pulsarx.options.service_info import ServiceInfo
from pulsarx.results import Result
from pulsarx.schema.schema import SchemaInfo
