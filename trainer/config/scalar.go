package config

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// errQuoted is a number or truth value that stands in quotes.
var errQuoted = errors.New("without quotes")

func hint(err error) string {
	if errors.Is(err, errQuoted) {
		return ", without quotes"
	}
	return ""
}

// setScalar puts text into v, which has no text form of its own. The error
// says only that it did not fit; wants says what would.
func setScalar(v reflect.Value, text string, quoted bool) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		t, err := time.ParseDuration(text)
		if err != nil || t < 0 {
			return errors.New("no duration")
		}
		v.SetInt(int64(t))
		return nil
	}
	if v.Kind() == reflect.String {
		if !utf8.ValidString(text) {
			return errors.New("no text")
		}
		v.SetString(text)
		return nil
	}
	err := setPlain(v, text)
	if err == nil && quoted {
		return errQuoted
	}
	return err
}

func setPlain(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return strconv.ErrSyntax
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			return strconv.ErrSyntax
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return strconv.ErrSyntax
		}
		v.SetFloat(f)
	default:
		return errors.New("no scalar")
	}
	return nil
}

// wants says in words what a value of v's type looks like.
func wants(v reflect.Value) string {
	switch t := v.Type(); {
	case t == reflect.TypeFor[Names]():
		return "auto or a list such as [a, b]"
	case t == reflect.TypeFor[Wire](), t == reflect.TypeFor[Schedule](), t == reflect.TypeFor[TLS]():
		return "a name, or a mapping with the key name"
	case t == reflect.TypeFor[LossScale]():
		return "dynamic or a number above 0"
	case t == reflect.TypeFor[Megabytes]():
		return "auto or a number above 0"
	case t == reflect.TypeFor[Bytes]():
		return "auto or a size such as 256KiB"
	case t == reflect.TypeFor[Count]():
		return "auto or a whole number of at least 1"
	case t == reflect.TypeFor[Switch]():
		return "auto, true or false"
	case t == reflect.TypeFor[Span]():
		return "a whole number of at least 1, or a range such as 2..8"
	case t == reflect.TypeFor[Every]():
		return `an interval such as "20 steps", "1 epoch" or "10m"`
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 60s or 2m"
	case t == reflect.TypeFor[[]string]():
		return "a list such as [a, b]"
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list of numbers such as [64, 32]"
	}
	return "a mapping of its keys"
}

// quote shows a text of the user's, cut when it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return strconv.Quote(s)
}

// quoteless is quote for numbers and truth values.
func quoteless(s string) string {
	q := quote(s)
	return q[1 : len(q)-1]
}
