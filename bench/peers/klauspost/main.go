// Speed of klauspost/reedsolomon, for "cargo xtask bench codes": one line of JSON a shape.
//
// Time is that of the locked thread on its processor, as in the program it is compared with.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

const (
	spent     = 150_000_000
	coldBytes = 256 << 20
)

// Nanoseconds that this thread has had a processor.
func now() int64 {
	var ts syscall.Timespec
	const threadCPUTime = 3
	_, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&ts)), 0)
	if e != 0 {
		panic(e)
	}
	return ts.Nano()
}

// GB/s of bytes a call, the best of three.
func speed(bytes int, work func(call int)) float64 {
	best := 0.0
	for i := 0; i < 3; i++ {
		begin, calls := now(), 0
		for now()-begin < spent {
			work(calls)
			calls++
		}
		best = max(best, float64(bytes)*float64(calls)/float64(now()-begin))
	}
	return best
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// One shape with one of the library's modes.
func measure(mode string, k, m, bytes, lost int, cold bool) {
	options := []reedsolomon.Option{reedsolomon.WithMaxGoroutines(1)}
	switch mode {
	case "leopard8":
		options = append(options, reedsolomon.WithLeopardGF(true))
	case "leopard16":
		options = append(options, reedsolomon.WithLeopardGF16(true))
	}
	code, err := reedsolomon.New(k, m, options...)
	if err != nil {
		return
	}
	stripes := 1
	if cold {
		stripes = (coldBytes + (k+m)*bytes - 1) / ((k + m) * bytes)
	}
	all := make([][][]byte, stripes)
	for s := range all {
		all[s] = reedsolomon.AllocAligned(k+m, bytes)
		for _, shard := range all[s] {
			for i := range shard {
				shard[i] = byte(i >> 3)
			}
		}
	}
	encode := speed(k*bytes, func(call int) { check(code.Encode(all[call%stripes])) })
	for _, stripe := range all {
		check(code.Encode(stripe))
	}
	shards := make([][]byte, k+m)
	decode := speed(k*bytes, func(call int) {
		copy(shards, all[call%stripes])
		for i := 0; i < lost; i++ {
			shards[i] = shards[i][:0]
		}
		check(code.ReconstructData(shards))
	})
	place := "hot"
	if cold {
		place = "cold"
	}
	fmt.Printf("{\"mode\":%q,\"shape\":\"%d+%d\",\"place\":%q,\"lost\":%d,\"encode\":%.3f,\"decode\":%.3f}\n",
		mode, k, m, place, lost, encode, decode)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

// Arguments: SHAPE:BYTES:LOST:hot|cold ...
func main() {
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	for _, argument := range os.Args[1:] {
		part := strings.Split(argument, ":")
		shape := strings.Split(part[0], "+")
		k, m := number(shape[0]), number(shape[1])
		bytes, lost, cold := number(part[1]), number(part[2]), part[3] == "cold"
		if k+m > 256 {
			measure("leopard16", k, m, bytes, lost, cold)
			continue
		}
		measure("matrix", k, m, bytes, lost, cold)
		if m >= 8 {
			measure("leopard8", k, m, bytes, lost, cold)
		}
	}
}
