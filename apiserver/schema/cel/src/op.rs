//! What calls do: one operation for each function name.

macro_rules! ops {
    ($($name:literal => $op:ident,)*) => {
        /// An operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Op {
            $($op,)*
        }

        impl Op {
            /// The operation of a function.
            pub(crate) fn of(function: &str) -> Option<Self> {
                match function {
                    $($name => Some(Self::$op),)*
                    _ => None,
                }
            }

            /// The name of its function.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$op => $name,)*
                }
            }
        }
    };
}

ops! {
    "!_" => Not,
    "-_" => Negate,
    "@in" => In,
    "@not_strictly_false" => NotStrictlyFalse,
    "@sortByAssociatedKeys" => SortByKeys,
    "_!=_" => NotEquals,
    "_%_" => Modulo,
    "_&&_" => And,
    "_*_" => Multiply,
    "_+_" => Add,
    "_-_" => Subtract,
    "_/_" => Divide,
    "_<=_" => LessEquals,
    "_<_" => Less,
    "_==_" => Equals,
    "_>=_" => GreaterEquals,
    "_>_" => Greater,
    "_?._" => OptSelect,
    "_?_:_" => Conditional,
    "_[?_]" => OptIndex,
    "_[_]" => Index,
    "_||_" => Or,
    "add" => QuantityAdd,
    "allowed" => Allowed,
    "asApproximateFloat" => AsApproximateFloat,
    "asInteger" => AsInteger,
    "bool" => ToBool,
    "bytes" => ToBytes,
    "cel.@mapInsert" => MapInsert,
    "charAt" => CharAt,
    "check" => Check,
    "cidr" => Cidr,
    "compareTo" => CompareTo,
    "contains" => Contains,
    "containsCIDR" => ContainsCidr,
    "containsIP" => ContainsIp,
    "distinct" => Distinct,
    "double" => ToDouble,
    "duration" => ToDuration,
    "dyn" => ToDyn,
    "endsWith" => EndsWith,
    "error" => DecisionError,
    "errored" => Errored,
    "family" => Family,
    "fieldSelector" => FieldSelector,
    "find" => Find,
    "findAll" => FindAll,
    "first" => First,
    "flatten" => Flatten,
    "format" => Format,
    "format.byte" => FormatByte,
    "format.date" => FormatDate,
    "format.datetime" => FormatDatetime,
    "format.dns1035Label" => FormatDns1035Label,
    "format.dns1035LabelPrefix" => FormatDns1035LabelPrefix,
    "format.dns1123Label" => FormatDns1123Label,
    "format.dns1123LabelPrefix" => FormatDns1123LabelPrefix,
    "format.dns1123Subdomain" => FormatDns1123Subdomain,
    "format.dns1123SubdomainPrefix" => FormatDns1123SubdomainPrefix,
    "format.labelValue" => FormatLabelValue,
    "format.named" => FormatNamed,
    "format.qualifiedName" => FormatQualifiedName,
    "format.uri" => FormatUri,
    "format.uuid" => FormatUuid,
    "getDate" => GetDate,
    "getDayOfMonth" => GetDayOfMonth,
    "getDayOfWeek" => GetDayOfWeek,
    "getDayOfYear" => GetDayOfYear,
    "getEscapedPath" => GetEscapedPath,
    "getFullYear" => GetFullYear,
    "getHost" => GetHost,
    "getHostname" => GetHostname,
    "getHours" => GetHours,
    "getMilliseconds" => GetMilliseconds,
    "getMinutes" => GetMinutes,
    "getMonth" => GetMonth,
    "getPort" => GetPort,
    "getQuery" => GetQuery,
    "getScheme" => GetScheme,
    "getSeconds" => GetSeconds,
    "group" => Group,
    "hasValue" => HasValue,
    "indexOf" => IndexOf,
    "int" => ToInt,
    "ip" => Ip,
    "ip.isCanonical" => IpIsCanonical,
    "isCIDR" => IsCidr,
    "isGlobalUnicast" => IsGlobalUnicast,
    "isGreaterThan" => IsGreaterThan,
    "isIP" => IsIp,
    "isInteger" => IsInteger,
    "isLessThan" => IsLessThan,
    "isLinkLocalMulticast" => IsLinkLocalMulticast,
    "isLinkLocalUnicast" => IsLinkLocalUnicast,
    "isLoopback" => IsLoopback,
    "isQuantity" => IsQuantity,
    "isSemver" => IsSemver,
    "isSorted" => IsSorted,
    "isURL" => IsUrl,
    "isUnspecified" => IsUnspecified,
    "join" => Join,
    "jsonpatch.escapeKey" => EscapeKey,
    "labelSelector" => LabelSelector,
    "last" => Last,
    "lastIndexOf" => LastIndexOf,
    "lists.range" => ListsRange,
    "lowerAscii" => LowerAscii,
    "major" => Major,
    "masked" => Masked,
    "matches" => Matches,
    "max" => Max,
    "min" => Min,
    "minor" => Minor,
    "name" => Name,
    "namespace" => Namespace,
    "optional.none" => OptionalNone,
    "optional.of" => OptionalOf,
    "optional.ofNonZeroValue" => OptionalOfNonZeroValue,
    "optional.unwrap" => OptionalUnwrap,
    "or" => OptionalOr,
    "orValue" => OrValue,
    "patch" => Patch,
    "path" => Path,
    "prefixLength" => PrefixLength,
    "quantity" => Quantity,
    "reason" => Reason,
    "replace" => Replace,
    "resource" => Resource,
    "reverse" => Reverse,
    "semver" => Semver,
    "serviceAccount" => ServiceAccount,
    "sets.contains" => SetsContains,
    "sets.equivalent" => SetsEquivalent,
    "sets.intersects" => SetsIntersects,
    "sign" => Sign,
    "size" => Size,
    "slice" => Slice,
    "sort" => Sort,
    "split" => Split,
    "startsWith" => StartsWith,
    "string" => ToString,
    "strings.quote" => StringsQuote,
    "sub" => QuantitySub,
    "subresource" => Subresource,
    "substring" => Substring,
    "sum" => Sum,
    "timestamp" => ToTimestamp,
    "trim" => Trim,
    "type" => TypeOf,
    "uint" => ToUint,
    "unwrapOpt" => UnwrapOpt,
    "upperAscii" => UpperAscii,
    "url" => Url,
    "validate" => Validate,
    "value" => Value,
}

impl Op {
    /// Whether it converts a value to a type; such a call on a constant is a constant.
    pub(crate) const fn is_conversion(self) -> bool {
        matches!(
            self,
            Self::ToBool
                | Self::ToBytes
                | Self::ToDouble
                | Self::ToDuration
                | Self::ToDyn
                | Self::ToInt
                | Self::ToString
                | Self::ToTimestamp
                | Self::TypeOf
                | Self::ToUint
        )
    }
}
